-- A page takes more than two seconds.
-- severity: notice
-- fix: Cache the page, or find the slow part on the server.
SELECT url, NULL AS target, latency_ms || ' ms' AS detail
FROM page
WHERE outcome = 'fetched' AND charset IS NOT NULL AND latency_ms > 2000
ORDER BY latency_ms DESC, url
