-- Which clients ask again or go in circles?
--
-- A retry repeats a request that has failed; a loop repeats calls without end (C006, C010).
-- plot: retries
SELECT
    coalesce(client_name, 'unknown') AS client,
    coalesce(client_version, '') AS version,
    provider,
    model,
    count(*) AS exchanges,
    count(*) FILTER (list_contains(marks, 'retry')) AS retries,
    count(*) FILTER (list_contains(marks, 'loop')) AS loops,
    count(DISTINCT (tape, thread)) FILTER (list_contains(marks, 'loop')) AS looping_conversations,
    round(100.0 * count(*) FILTER (list_contains(marks, 'retry') OR list_contains(marks, 'loop'))
        / count(*), 2) AS percent,
    coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))
        FILTER (list_contains(marks, 'retry') OR list_contains(marks, 'loop')), 0)::BIGINT AS tokens
FROM exchanges
GROUP BY ALL
ORDER BY retries + loops DESC, exchanges DESC, client, version, provider, model
