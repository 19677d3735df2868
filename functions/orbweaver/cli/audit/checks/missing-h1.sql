-- A page has no main heading.
-- severity: notice
-- fix: Add an h1 element that names the content.
SELECT url, NULL AS target, title AS detail
FROM page
-- A truncated body can have its heading in the missing part.
WHERE indexable AND h1 = 0 AND NOT contains(coalesce(cut, ''), 'body=')
ORDER BY url
