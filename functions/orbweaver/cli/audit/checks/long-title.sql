-- A title has more than 70 characters.
-- severity: notice
-- fix: Shorten it, because search engines truncate it.
SELECT url, NULL AS target, length(title) || ' characters: ' || title AS detail
FROM page
WHERE indexable AND length(title) > 70
ORDER BY length(title) DESC, url
