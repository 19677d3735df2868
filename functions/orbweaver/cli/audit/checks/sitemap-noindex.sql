-- A sitemap lists a page with noindex.
-- severity: warning
-- fix: Remove the page from the sitemap, or remove noindex.
-- needs: links
SELECT entry.sitemap AS url, page.url AS target, NULL AS detail
FROM sitemap_entry AS entry JOIN page ON entry.url = page.url
WHERE page.noindex
ORDER BY url, target
