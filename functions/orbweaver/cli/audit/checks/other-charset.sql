-- A page uses another charset than UTF-8.
-- severity: notice
-- fix: Serve the page as UTF-8.
SELECT url, NULL AS target, charset AS detail
FROM page
WHERE readable AND lower(charset) NOT IN ('utf-8', 'us-ascii')
ORDER BY url
