-- Table of one audit: result, the findings of both runs with their status.
CREATE OR REPLACE TEMP TABLE result AS
WITH known AS (SELECT DISTINCT "check", url, coalesce(target, '') AS target FROM earlier),
found AS (SELECT DISTINCT "check", url, coalesce(target, '') AS target FROM finding)
SELECT finding.*,
       CASE WHEN NOT getvariable('compared') THEN 'present'
            WHEN finding."check" NOT IN (SELECT unnest(getvariable('earlier_checks'))) THEN 'uncompared'
            WHEN known.url IS NULL THEN 'new'
            ELSE 'remaining' END AS status
FROM finding
LEFT JOIN known ON known."check" = finding."check" AND known.url = finding.url
  AND known.target = coalesce(finding.target, '')
UNION ALL
SELECT earlier.*,
       CASE WHEN earlier."check" NOT IN (SELECT unnest(getvariable('checks'))) THEN 'unjudged'
            WHEN page.ours OR target.ours THEN 'unjudged'
            WHEN page.url IS NULL AND NOT getvariable('complete') THEN 'unjudged'
            ELSE 'fixed' END
FROM earlier
LEFT JOIN found ON found."check" = earlier."check" AND found.url = earlier.url
  AND found.target = coalesce(earlier.target, '')
LEFT JOIN page ON page.url = earlier.url
LEFT JOIN page AS target ON target.url = earlier.target
WHERE found.url IS NULL
