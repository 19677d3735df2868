-- A sitemap lists a page that names another page as canonical.
-- severity: warning
-- fix: List the canonical page instead.
-- needs: links
SELECT entry.sitemap AS url, page.url AS target, 'its canonical URL is ' || page.canonical AS detail
FROM sitemap_entry AS entry JOIN page ON entry.url = page.url
WHERE page.canonical <> page.url AND (page.readable OR page.reason = 'canonical')
ORDER BY url, target
