-- A page names several URLs for the same language.
-- severity: warning
-- fix: Keep one hreflang link for each language.
-- needs: links
SELECT url, min(target_url) AS target, lang || ': ' || count(DISTINCT target_url) || ' URLs' AS detail
FROM run_link
WHERE kind = 'hreflang' AND lang IS NOT NULL
GROUP BY url, lang
HAVING count(DISTINCT target_url) > 1
ORDER BY url
