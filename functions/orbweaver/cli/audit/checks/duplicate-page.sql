-- Different URLs have exactly the same content.
-- severity: warning
-- fix: Redirect to one of the URLs, or name it as canonical on the others.
SELECT url, NULL AS target, pages || ' pages, the first is ' || first AS detail
FROM (
  SELECT url, count(*) OVER same AS pages, min(url) OVER same AS first,
         min(base_of(url)) OVER same <> max(base_of(url)) OVER same AS differ
  FROM page
  WHERE indexable AND sha256 IS NOT NULL
  WINDOW same AS (PARTITION BY sha256)
)
WHERE pages > 1 AND differ
ORDER BY pages DESC, first, url
