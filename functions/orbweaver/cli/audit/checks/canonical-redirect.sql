-- The canonical URL of a page redirects.
-- severity: warning
-- fix: Name the final page in rel=canonical.
SELECT page.url, page.canonical AS target,
       'leads to ' || coalesce(target.leads_to, 'another URL') AS detail
FROM page JOIN page AS target ON page.canonical = target.url
WHERE target.outcome = 'redirected'
ORDER BY page.url
