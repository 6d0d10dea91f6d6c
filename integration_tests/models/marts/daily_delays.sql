-- closed days never change, so rows are only added: no key is needed
select
    flight_date,
    origin,
    count(*) as flights,
    count_if(is_cancelled) as cancelled,
    cast(avg(dep_delay) as decimal(9, 2)) as avg_dep_delay,
    cast(avg(arr_delay) as decimal(9, 2)) as avg_arr_delay
from {{ ref('stg_flights') }}
where is_over
group by flight_date, origin
