-- what is known on the evening of `as_of`: that day's flights are scheduled, the others are over
select
    carrier,
    flight,
    time_hour as scheduled_hour,
    make_date(year, month, day) as flight_date,
    tailnum,
    origin,
    dest,
    sched_dep_time,
    sched_arr_time,
    distance,
    make_date(year, month, day) < date'{{ var("as_of") }}' as is_over,
    if(is_over, dep_delay, null) as dep_delay,
    if(is_over, arr_delay, null) as arr_delay,
    if(is_over, air_time, null) as air_time,
    is_over and dep_time is null as is_cancelled
from {{ source('raw', 'flights') }}
where make_date(year, month, day) <= date'{{ var("as_of") }}'
