-- The page table of the audit with the column left_out, a value of `Unlisted`. Null: a file lists it.
CREATE OR REPLACE TEMP VIEW listed AS
SELECT *,
       CASE WHEN NOT starts_with(url, getvariable('base')) THEN 'outside'
            WHEN ours THEN 'unjudged'
            WHEN outcome = 'redirected' THEN 'redirect'
            WHEN reason = 'canonical' THEN 'canonical'
            WHEN noindex THEN 'noindex'
            WHEN dead OR outcome = 'failed' THEN 'failed'
            -- The status of an unchanged page is 304, because the request had a condition.
            WHEN status <> 200 AND outcome <> 'unchanged' THEN 'failed'
            WHEN reason = 'soft_404' THEN 'soft_404'
            WHEN reason IN ('content_type', 'sitemap') OR charset IS NULL THEN 'not_html'
            WHEN canonical <> url THEN 'canonical'
            WHEN unrendered THEN 'scripts'
            WHEN NOT indexable THEN 'unread'
            WHEN length(url) > getvariable('url_chars_max') THEN 'long_url'
       END AS left_out,
       -- The three date formats of RFC 9110.
       try_strptime(last_modified, ['%a, %d %b %Y %H:%M:%S GMT', '%A, %d-%b-%y %H:%M:%S GMT',
                                    '%a %b %d %H:%M:%S %Y']) AS modified_at,
       -- A server that generates a page on each request often sends the time of the request.
       CASE WHEN modified_at <= fetched_at - INTERVAL 1 MINUTE AND modified_at >= DATE '1990-01-01'
            THEN strftime(modified_at, '%Y-%m-%dT%H:%M:%SZ') END AS lastmod
FROM page
