-- A link spells its URL in another way than the canonical one.
-- severity: notice
-- fix: Write the canonical URL, without tracking parameters, default ports and upper case in the host.
-- needs: links
SELECT DISTINCT url, target_url AS target, 'written as ' || spelling AS detail
FROM run_link
WHERE spelling IS NOT NULL AND kind IN ('a', 'area') AND decision NOT IN ('invalid', 'too_long')
  -- A fragment or a missing slash after the host is no fault.
  AND regexp_replace(spelling, '#.*$', '', 's') NOT IN (target_url, rtrim(target_url, '/'))
ORDER BY url, target
