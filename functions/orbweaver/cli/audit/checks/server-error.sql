-- The server fails when this URL is requested.
-- severity: error
-- fix: Find the cause in the log of the server.
SELECT url, NULL AS target, linked_from(error, referrer) AS detail
FROM page
WHERE reason = 'http_server_error'
ORDER BY url
