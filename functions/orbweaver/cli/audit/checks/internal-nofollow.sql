-- A link to a page of the same site has nofollow.
-- severity: notice
-- fix: Remove nofollow, or forbid the target in robots.txt if crawlers must not request it.
-- needs: links
SELECT DISTINCT url, target_url AS target, rel AS detail
FROM run_link
WHERE kind IN ('a', 'area') AND host_of(url) = host_of(target_url)
  AND list_contains(string_split(coalesce(rel, ''), ' '), 'nofollow')
ORDER BY url, target
