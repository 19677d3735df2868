-- The TLS certificate or configuration of the server is invalid.
-- severity: error
-- fix: Renew the certificate, or serve the complete chain and a current TLS version.
SELECT url, NULL AS target, linked_from(error, referrer) AS detail
FROM page
WHERE reason = 'tls'
ORDER BY url
