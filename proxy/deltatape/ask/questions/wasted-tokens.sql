-- How many tokens were spent on replies that could not be used?
--
-- Replies whose worst finding is an error of anyone but the app, or whose transport broke.
-- plot: wasted
WITH judged AS (
    SELECT
        *,
        coalesce(input_tokens, 0) + coalesce(output_tokens, 0) AS tokens,
        coalesce(worst_severity = 'error' AND worst_blame IS DISTINCT FROM 'app', false)
            OR coalesce(ending, 'complete') NOT IN ('complete', 'client_closed') AS unusable
    FROM exchanges
)
SELECT
    provider,
    model,
    count(*) AS exchanges,
    count(*) FILTER (unusable) AS unusable,
    sum(tokens)::BIGINT AS tokens,
    coalesce(sum(tokens) FILTER (unusable), 0)::BIGINT AS wasted,
    round(100.0 * coalesce(sum(tokens) FILTER (unusable), 0) / nullif(sum(tokens), 0), 2) AS percent,
    coalesce(mode(worst_code) FILTER (unusable), '') AS mostly
FROM judged
GROUP BY ALL
ORDER BY wasted DESC, unusable DESC, provider, model
