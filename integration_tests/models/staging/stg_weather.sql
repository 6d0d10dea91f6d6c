select
    origin,
    time_hour,
    temp,
    dewp,
    humid,
    wind_dir,
    wind_speed,
    wind_gust,
    precip,
    pressure,
    visib
from {{ source('raw', 'weather') }}
where make_date(year, month, day) <= date'{{ var("as_of") }}'
