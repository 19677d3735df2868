-- A sitemap lists a URL that redirects.
-- severity: warning
-- fix: List the final page instead.
-- needs: links
SELECT entry.sitemap AS url, page.url AS target, 'leads to ' || coalesce(page.leads_to, 'another URL') AS detail
FROM sitemap_entry AS entry JOIN page ON entry.url = page.url
WHERE page.outcome = 'redirected'
ORDER BY url, target
