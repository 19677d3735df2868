-- An hreflang attribute is no language code.
-- severity: warning
-- fix: Write a language like de, a language with a region like de-AT, or x-default.
-- needs: links
SELECT DISTINCT url, target_url AS target, lang AS detail
FROM run_link
WHERE kind = 'hreflang' AND lang IS NOT NULL
  AND NOT regexp_full_match(lang, '(?i)x-default|[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?')
ORDER BY url, target
