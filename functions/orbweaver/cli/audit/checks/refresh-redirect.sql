-- A page redirects by a refresh instead of a status.
-- severity: notice
-- fix: Send the status 301 and a Location header.
SELECT url, leads_to AS target, NULL AS detail
FROM page
WHERE reason = 'refresh'
ORDER BY url
