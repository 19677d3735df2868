-- An image has no alt attribute.
-- severity: warning
-- fix: Describe the image in alt, or give it an empty one if it only decorates.
-- needs: links
SELECT DISTINCT url, target_url AS target, NULL AS detail
FROM run_link
WHERE kind = 'img' AND text IS NULL
ORDER BY url, target
