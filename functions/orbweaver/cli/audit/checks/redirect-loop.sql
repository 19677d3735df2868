-- Redirects form a loop, or there are more than ten in a row.
-- severity: error
-- fix: Let each redirect lead to its final page.
SELECT url, NULL AS target, error AS detail
FROM page
WHERE reason = 'redirect_limit'
UNION ALL
-- One row for each loop: the first of its URLs.
SELECT start, NULL, array_to_string(path, ' → ')
FROM chain
WHERE loops AND final = start AND start = list_min(path)
ORDER BY url
