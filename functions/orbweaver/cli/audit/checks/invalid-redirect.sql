-- A redirect leads to no http or https URL.
-- severity: error
-- fix: Correct the Location header.
SELECT url, NULL AS target, linked_from(error, referrer) AS detail
FROM page
WHERE reason = 'redirect_invalid'
ORDER BY url
