-- A link is not a valid URL.
-- severity: warning
-- fix: Correct the href attribute.
-- needs: links
SELECT DISTINCT url, target_url AS target, text AS detail
FROM run_link
WHERE decision = 'invalid' AND kind IN ('a', 'area')
  -- Links like mailto: and tel: lead to no page.
  AND (regexp_matches(target_url, '(?i)^\s*https?:')
       OR NOT regexp_matches(coalesce(target_url, ''), '^\s*[A-Za-z][A-Za-z0-9+.-]*:'))
ORDER BY url, target
