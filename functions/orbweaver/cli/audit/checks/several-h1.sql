-- A page has several main headings.
-- severity: notice
-- fix: Keep one h1 element, and use h2 for sections.
SELECT url, NULL AS target, h1 || ' h1 elements' AS detail
FROM page
WHERE indexable AND h1 > 1
ORDER BY h1 DESC, url
