{{ config(unique_key=['origin', 'time_hour']) }}
select * from {{ ref('stg_weather') }}
