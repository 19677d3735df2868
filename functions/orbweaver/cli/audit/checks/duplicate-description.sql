-- Different pages have the same description.
-- severity: notice
-- fix: Give each page its own description.
SELECT url, NULL AS target, pages || ' pages: ' || description AS detail
FROM (
  SELECT url, description, count(*) OVER same AS pages,
         min(sha256) OVER same <> max(sha256) OVER same AS differ
  FROM page
  WHERE indexable AND description IS NOT NULL
  WINDOW same AS (PARTITION BY description)
)
-- Pages with the same content are duplicates in whole.
WHERE pages > 1 AND differ
ORDER BY pages DESC, description, url
