-- one row a scheduled flight; its delays follow the day after
{{ config(unique_key=['carrier', 'flight', 'scheduled_hour']) }}
select
    flights.*,
    airlines.name as airline,
    bands.band as delay_band
from {{ ref('stg_flights') }} as flights
left join {{ source('raw', 'airlines') }} as airlines using (carrier)
left join {{ ref('delay_bands') }} as bands
    on flights.arr_delay >= bands.from_minutes and flights.arr_delay < bands.to_minutes
