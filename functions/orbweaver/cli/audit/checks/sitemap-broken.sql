-- A sitemap lists a URL that does not exist or fails.
-- severity: error
-- fix: Remove the URL from the sitemap, or restore the page.
-- needs: links
SELECT entry.sitemap AS url, page.url AS target, page.error AS detail
FROM sitemap_entry AS entry JOIN page ON entry.url = page.url
WHERE page.dead
ORDER BY url, target
