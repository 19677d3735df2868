-- A page has no title.
-- severity: error
-- fix: Add a title element.
SELECT url, NULL AS target, linked_from(NULL, referrer) AS detail
FROM page
WHERE readable AND title IS NULL
ORDER BY url
