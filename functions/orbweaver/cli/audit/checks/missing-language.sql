-- A page does not name its language.
-- severity: notice
-- fix: Add lang to the html element.
SELECT url, NULL AS target, NULL AS detail
FROM page
WHERE readable AND language IS NULL
ORDER BY url
