-- The main text of a page has fewer than 200 characters.
-- severity: notice
-- fix: Add content, merge the page with another one, or mark it with noindex.
-- needs: texts
SELECT page.url, NULL AS target, length(coalesce(run_text.text, '')) || ' characters' AS detail
FROM page JOIN run_text ON run_text.url = page.url
WHERE page.indexable AND length(coalesce(run_text.text, '')) < 200
ORDER BY length(coalesce(run_text.text, '')), page.url
