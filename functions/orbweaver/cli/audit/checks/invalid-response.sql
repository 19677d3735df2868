-- The response is not valid HTTP, or has a status that no page can have.
-- severity: error
-- fix: Correct the headers, the status or the encoding that the server sends.
SELECT url, NULL AS target, linked_from(coalesce(error, reason), referrer) AS detail
FROM page
WHERE reason IN ('http_status', 'protocol', 'encoding')
ORDER BY url
