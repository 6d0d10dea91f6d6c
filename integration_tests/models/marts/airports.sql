{{ config(unique_key='faa') }}
select
    airports.*,
    count(flights.dest) as arrivals,
    named_struct('lat', airports.lat, 'lon', airports.lon) as location
from {{ source('raw', 'airports') }} as airports
left join {{ ref('stg_flights') }} as flights on flights.dest = airports.faa and flights.is_over
group by all
