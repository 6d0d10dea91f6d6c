-- planes that flew in the last seven days: some are new every day, others drop out
{{ config(unique_key='tailnum') }}
select
    tailnum,
    count(*) as flights,
    sum(distance) as miles,
    max(flight_date) as last_flight,
    any_value(planes.manufacturer) as manufacturer,
    any_value(planes.model) as model,
    any_value(planes.seats) as seats
from {{ ref('stg_flights') }}
left join {{ source('raw', 'planes') }} as planes using (tailnum)
where flight_date > date_sub(date'{{ var("as_of") }}', 7) and tailnum is not null
group by tailnum
