-- Different pages have the same title.
-- severity: warning
-- fix: Give each page its own title.
SELECT url, NULL AS target, pages || ' pages: ' || title AS detail
FROM (
  SELECT url, title, count(*) OVER same AS pages,
         min(sha256) OVER same <> max(sha256) OVER same AS differ
  FROM page
  WHERE indexable AND title IS NOT NULL
  WINDOW same AS (PARTITION BY title)
)
-- Pages with the same content are duplicates in whole.
WHERE pages > 1 AND differ
ORDER BY pages DESC, title, url
