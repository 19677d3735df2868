-- A query parameter makes another URL of the same content.
-- severity: warning
-- fix: Name the URL without the parameter as canonical, or remove the parameter from links.
SELECT url, first AS target, pages || ' URLs have this content' AS detail
FROM (
  SELECT url, count(*) OVER same AS pages,
         first_value(url) OVER (PARTITION BY sha256, base_of(url) ORDER BY length(url), url) AS first
  FROM page
  WHERE indexable AND sha256 IS NOT NULL
  WINDOW same AS (PARTITION BY sha256, base_of(url))
)
WHERE pages > 1 AND url <> first
ORDER BY pages DESC, first, url
