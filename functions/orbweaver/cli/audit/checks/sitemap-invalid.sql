-- A sitemap cannot be read.
-- severity: error
-- fix: Correct its XML, or the URL in robots.txt.
SELECT url, NULL AS target, linked_from(error, referrer) AS detail
FROM page
WHERE reason = 'sitemap_invalid'
ORDER BY url
