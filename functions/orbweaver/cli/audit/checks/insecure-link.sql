-- A page on https links to a URL on http.
-- severity: notice
-- fix: Link to https.
-- needs: links
SELECT DISTINCT url, target_url AS target, NULL AS detail
FROM run_link
WHERE kind IN ('a', 'area') AND decision NOT IN ('invalid', 'too_long')
  AND starts_with(target_url, 'http://') AND starts_with(url, 'https://')
ORDER BY url, target
