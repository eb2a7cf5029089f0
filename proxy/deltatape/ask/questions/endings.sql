-- How do the streams of each provider end?
--
-- `finish` is the provider's own word, `ending` how the transport ended.
-- plot: exchanges
WITH counted AS (
    SELECT
        provider,
        ending,
        status,
        finish,
        count(*) AS exchanges,
        count(*) FILTER (worst_severity = 'error') AS with_errors
    FROM exchanges
    GROUP BY ALL
)
SELECT
    provider,
    coalesce(ending, 'open') AS ending,
    status::VARCHAR AS status,
    finish,
    exchanges,
    round(100.0 * exchanges / sum(exchanges) OVER (PARTITION BY provider), 2) AS percent,
    with_errors
FROM counted
ORDER BY sum(exchanges) OVER (PARTITION BY provider) DESC, provider, exchanges DESC,
    ending, status, finish
