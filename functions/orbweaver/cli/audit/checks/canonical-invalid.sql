-- The canonical URL of a page is no valid URL.
-- severity: warning
-- fix: Write an absolute URL in rel=canonical.
SELECT url, NULL AS target, NULL AS detail
FROM page
WHERE readable AND regexp_matches(cut, '(^| )canonical=')
ORDER BY url
