-- What is the worst finding of each model and day?
--
-- The most severe, then the surest, then the one that most exchanges have.
-- plot: exchanges
WITH counted AS (
    SELECT
        day, provider, model, code, any_value(name) AS finding, severity,
        min(confidence_rank(confidence)) AS sure,
        count(DISTINCT (tape, exchange)) AS exchanges,
        any_value(message ORDER BY time) AS example
    FROM findings
    GROUP BY day, provider, model, code, severity
)
SELECT day, model, provider, severity, code, finding, exchanges, example
FROM counted
QUALIFY row_number() OVER (
    PARTITION BY day, provider, model
    ORDER BY severity_rank(severity), sure, exchanges DESC, code
) = 1
ORDER BY day DESC, severity_rank(severity), exchanges DESC, model
