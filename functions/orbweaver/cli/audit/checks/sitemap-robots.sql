-- A sitemap lists a URL that robots.txt forbids.
-- severity: warning
-- fix: Allow the URL in robots.txt, or remove it from the sitemap.
-- needs: links
SELECT entry.sitemap AS url, page.url AS target, NULL AS detail
FROM sitemap_entry AS entry JOIN page ON entry.url = page.url
WHERE page.reason = 'robots'
ORDER BY url, target
