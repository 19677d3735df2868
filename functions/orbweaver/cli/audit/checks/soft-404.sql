-- A "not found" page has the status 200.
-- severity: warning
-- fix: Send the status 404 or 410.
SELECT url, NULL AS target, linked_from(title, referrer) AS detail
FROM page
WHERE reason = 'soft_404'
ORDER BY url
