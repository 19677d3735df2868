-- Where the requests went: by folder, names of parameters and namespace of the URL: the last 30 days
SELECT crawl,
       regexp_extract(url, '^[a-z]+://[^/?]+(/(?:[^/?]*/){0,2})', 1) AS folder,
       regexp_extract_all(url, '(?:\?|&|;)([^=&;]+)', 1) AS parameters,
       NULLIF(regexp_extract(url, '(?:\?|&|;)(?:a|action|do|mode|view)=([a-z_]+)', 1), '') AS action,
       NULLIF(regexp_extract(url, '(?:/|=)([A-Z][A-Za-z_]+)(?::|%3A)', 1), '') AS namespace,
       sum(attempt) AS requests,
       sum(CASE WHEN reason = 'noindex' THEN 1 ELSE 0 END) AS noindex,
       sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS failed,
       count(DISTINCT title) AS titles,
       count(DISTINCT sha256) AS bodies,
       min(url) AS example
FROM pages
WHERE dt >= CAST(CAST(current_date - INTERVAL '30' DAY AS date) AS varchar)
  AND latency_ms IS NOT NULL
GROUP BY 1, 2, 3, 4, 5
ORDER BY requests DESC, crawl, example
LIMIT 100
