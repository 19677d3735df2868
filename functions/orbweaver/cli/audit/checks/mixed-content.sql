-- A page on https loads or sends something over http.
-- severity: error
-- fix: Use the https URL.
-- needs: links
SELECT DISTINCT url, target_url AS target, kind AS detail
FROM run_link
WHERE kind IN ('img', 'source', 'media', 'icon', 'script', 'stylesheet', 'iframe', 'form')
  AND starts_with(target_url, 'http://') AND starts_with(url, 'https://')
ORDER BY url, target
