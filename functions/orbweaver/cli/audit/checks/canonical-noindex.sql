-- The canonical URL of a page has noindex.
-- severity: warning
-- fix: Remove noindex from the canonical page, or name another one.
SELECT page.url, page.canonical AS target, NULL AS detail
FROM page JOIN page AS target ON page.canonical = target.url
WHERE page.url <> target.url AND target.noindex
ORDER BY page.url
