-- A page has no description.
-- severity: notice
-- fix: Add a meta element with the name description.
SELECT url, NULL AS target, title AS detail
FROM page
WHERE indexable AND description IS NULL
ORDER BY url
