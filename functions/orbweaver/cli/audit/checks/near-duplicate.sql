-- The main texts of different pages differ only in numbers, punctuation and case.
-- severity: notice
-- fix: Keep one of the pages, or name it as canonical on the others.
-- needs: texts
WITH digest AS (
  SELECT page.url, page.sha256, hash(regexp_replace(lower(run_text.text), '[^\p{L}]+', '', 'g')) AS letters
  FROM page JOIN run_text ON run_text.url = page.url
  -- Short texts are alike without being copies.
  WHERE page.indexable AND length(run_text.text) >= 200
)
SELECT url, NULL AS target, pages || ' pages, the first is ' || first AS detail
FROM (
  SELECT url, count(*) OVER same AS pages, min(url) OVER same AS first,
         min(sha256) OVER same <> max(sha256) OVER same AS differ
  FROM digest
  WINDOW same AS (PARTITION BY letters)
)
WHERE pages > 1 AND differ
ORDER BY pages DESC, first, url
