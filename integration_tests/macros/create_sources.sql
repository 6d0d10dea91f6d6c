{#- The package's CSV files as tables. -#}
{% macro create_sources() %}
  {%- set columns = {
    'flights': 'year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, '
      ~ 'arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int, '
      ~ 'hour int, minute int, time_hour timestamp',
    'airlines': 'carrier string, name string',
    'airports': 'faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string',
    'planes': 'tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, speed int, '
      ~ 'engine string',
    'weather': 'origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, wind_dir int, '
      ~ 'wind_speed double, wind_gust double, precip double, pressure double, visib double, time_hour timestamp',
  } -%}
  {%- if execute -%}
    {%- do run_query('create schema if not exists raw') -%}
    {%- for name, definition in columns.items() -%}
      {%- set create -%}
        create table if not exists raw.{{ name }} ({{ definition }})
        using csv options (path '{{ var("data") }}/{{ name }}.csv', header 'true', nullValue 'NA')
      {%- endset -%}
      {%- do run_query(create) -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}
