refresh table `shop`.`it's ``odd```
