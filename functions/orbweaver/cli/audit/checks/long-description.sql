-- A description has more than 200 characters.
-- severity: notice
-- fix: Shorten it, because search engines truncate it.
SELECT url, NULL AS target, length(description) || ' characters: ' || description AS detail
FROM page
WHERE indexable AND length(description) > 200
ORDER BY length(description) DESC, url
